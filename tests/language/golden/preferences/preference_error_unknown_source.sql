SELECT * FROM store9 WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
