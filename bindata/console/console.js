// A button to copy beside each command. Everything else works without this file.
(function () {
  "use strict";
  function addButtons(root) {
    if (!navigator.clipboard) return;
    root.querySelectorAll(".command").forEach(function (command) {
      if (command.querySelector("button")) return;
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.setAttribute("aria-label", "Copy the command");
      button.addEventListener("click", function () {
        navigator.clipboard.writeText(command.querySelector("code").textContent).then(function () {
          button.textContent = "Copied";
          setTimeout(function () { button.textContent = "Copy"; }, 2000);
        });
      });
      command.appendChild(button);
    });
  }
  addButtons(document);
  document.addEventListener("htmx:load", function (event) { addButtons(event.detail.elt); });
})();
