"""What comes in: scanning, following and watching folders; decoding, encoding, reading; the indexer."""
