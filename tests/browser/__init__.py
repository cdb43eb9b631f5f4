"""The shipped extension in a real Chromium, with the host that install.sh registered."""
