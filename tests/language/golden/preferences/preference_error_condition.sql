SELECT * FROM store1 WITH PREFERENCE SUMMARY.Estimate.Count(itemno) > 5
