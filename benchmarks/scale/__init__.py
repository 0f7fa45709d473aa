"""Libraries of the paper's sizes: what every type of index finds, how fast, and what it takes."""
