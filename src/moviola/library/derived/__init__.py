"""Indexes, names and views: derived from the catalogue and the features, and rebuilt when missing."""
