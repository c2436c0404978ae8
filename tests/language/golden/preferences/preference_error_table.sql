SELECT * FROM planes WITH PREFERENCE SUMMARY.Estimate.Count(flight)
