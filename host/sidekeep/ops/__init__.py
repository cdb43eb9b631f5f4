"""What is done around the host: install, register, check, remove.

A host started by a browser never imports this package. The modules that install.sh needs before
the libraries are in place (``files``, ``places``, ``ids``, ``browsers``, ``state``, ``options``,
``launcher``, ``libraries``, ``program``, ``plan``) use the standard library alone.
"""
