"""What people keep: saved searches, collections, tags, ratings and concepts."""
