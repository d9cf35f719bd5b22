// Makes a menu of the versions that are published beside this one; without it there is a link to their list.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector(".site-versions");
  const versions = window.siteVersions || [];
  if (!place || versions.length < 2) return;
  const link = place.querySelector("a");
  const root = link.href.replace(/index\.html$/, "");
  const menu = document.createElement("select");
  menu.setAttribute("aria-label", "Version");
  for (const name of versions) {
    menu.add(new Option(name, name, false, name === link.dataset.version));
  }
  menu.addEventListener("change", () => {
    window.location.href = root + encodeURIComponent(menu.value) + "/index.html";
  });
  link.replaceWith(menu);
});
