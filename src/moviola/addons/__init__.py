"""What few need: each a folder of its own that comes in by the same hooks as a plug-in of anybody's."""
