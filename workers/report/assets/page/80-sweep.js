function sweepPage() { return [] }
