"""Commands of this group; see the modules that it imports."""
