"""What is made of the catalogue and the features, and can be made anew: indexes, names, views."""
