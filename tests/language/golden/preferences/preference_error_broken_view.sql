SELECT * FROM broken WITH PREFERENCE SUMMARY.Estimate.Count(carrier)
