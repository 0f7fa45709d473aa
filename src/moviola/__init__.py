"""moviola: video moment search. Text in, a ranked list of moments (video, start, end, score) out."""
