SELECT * FROM carriers WITH PREFERENCE SUMMARY.Estimate.Count(carrier)
