package report

type sweepPage struct{}
