"""The comparison of all models on gridhouse: one world, the same splits and features, one report."""
