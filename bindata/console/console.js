// A button to copy beside each command, and the focus kept while a live page changes.
// Everything else works without this file.
(function () {
  "use strict";
  var kept = null; // the place of the focus in what is replaced

  function name(button, words) {
    button.textContent = words;
    button.setAttribute("aria-label", words + " the command");
  }
  function addButtons() {
    if (!navigator.clipboard) return;
    document.querySelectorAll(".command").forEach(function (command) {
      if (command.querySelector("button")) return;
      var button = document.createElement("button");
      button.type = "button";
      name(button, "Copy");
      button.addEventListener("click", function () {
        navigator.clipboard.writeText(command.querySelector("code").textContent).then(function () {
          name(button, "Copied");
          setTimeout(function () { name(button, "Copy"); }, 2000);
        });
      });
      command.appendChild(button);
    });
  }
  function places(root) {
    return Array.from(root.querySelectorAll("a, button, select, input, summary, [tabindex]"));
  }
  function keep(event) {
    var root = event.target, at = places(root).indexOf(document.activeElement);
    kept = at < 0 ? null : { root: root, at: at };
  }
  function restore() {
    var place = kept && places(kept.root)[kept.at];
    if (place && document.activeElement === document.body) place.focus({ preventScroll: true });
    kept = null;
  }
  addButtons();
  document.addEventListener("htmx:load", addButtons);
  document.addEventListener("htmx:sseBeforeMessage", keep);
  document.addEventListener("htmx:sseMessage", function () {
    setTimeout(restore, 100); // htmx settles, and buttons are added, after 20 ms
  });
})();
