"""A hook that runs an action once Keras has been imported, by any module."""

import re
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# While one of these is being imported, Keras or other modules that the action needs may
# be only partly loaded: Keras and TensorFlow import each other, and the package's
# modules import both.
_WATCHED = re.compile(r"keras|tensorflow|keras_ortho\..*")


def after_keras(action: Callable[[], None]) -> None:
    """Runs an action as soon as Keras is loaded, immediately if it is loaded already.

    Keras need not be installed. An error in the action propagates from the import that
    loaded Keras.

    Args:
        action: Function to call once.

    Example:
    >>> after_keras(lambda: print(keras.backend.backend()))
    """
    if "keras" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Watcher(action))


class _Watcher:
    """Import finder that delegates to later finders, and acts after the last import."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.keras_is_loaded = False
        # In all threads: acting within an import that another thread waits for would
        # be a deadlock.
        self.imports_under_way = 0
        self.lock = threading.Lock()

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Implements `importlib.abc.MetaPathFinder.find_spec`."""
        finders = list(sys.meta_path)  # Another thread may remove this finder.
        if not _WATCHED.fullmatch(name) or self not in finders:
            return None
        later = finders[finders.index(self) + 1 :]
        specs = (finder.find_spec(name, path, target) for finder in later)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._watch(spec.loader)
        return spec

    def _watch(self, loader: object) -> None:
        execute = loader.exec_module  # type: ignore[attr-defined]

        def exec_module(module: ModuleType) -> None:
            with self.lock:
                self.imports_under_way += 1
            try:
                execute(module)
            finally:
                with self.lock:
                    self.imports_under_way -= 1
            self._act_after(module.__name__)

        loader.exec_module = exec_module  # type: ignore[attr-defined]

    def _act_after(self, name: str) -> None:
        with self.lock:
            self.keras_is_loaded |= name == "keras"
            due = self.keras_is_loaded and not self.imports_under_way
            if not due or self not in sys.meta_path:
                return
            sys.meta_path.remove(self)
        self.action()
