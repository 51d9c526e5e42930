package store

// SetPartBytes makes uploads go in small parts, so that tests need not send much.
func (s *S3) SetPartBytes(n int64) { s.partBytes = n }
