"""Watches by kopf (`Watcher`).

What this operator needs beyond kopf 1.45, and the module that adds it:

* `imports`: kopf loads the official client `kubernetes` if it is installed. The client takes two
  fifths of the operator's start-up time and 15 MiB, and no handler here needs it.
* `settings`: kopf annotates and deep-copies objects; with these storages it writes nothing. Where a
  login fails, kopf repeats it without a pause.
* `decoding`: kopf stops reading a kind at an object that is nested too deep.
* `streams`: kopf drops deletions that happened before a new list, stops as a whole when one stream
  fails, and watches every kind in every namespace, with one selector per kind.
* `watcher`: kopf assumes that it owns its event loop: it replaces signal handlers and cancels every
  task that started later. It runs in a thread and a loop of its own, and starts again if it ends.
"""
