"""What papers study of measures (AxIoU) and of judgements (TVR-Ranking), for runs and files of any source."""
