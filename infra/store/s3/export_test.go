package s3

// SetPartBytes makes uploads go in small parts, so that tests need not send much.
func (s *Store) SetPartBytes(n int64) { s.partBytes = n }
