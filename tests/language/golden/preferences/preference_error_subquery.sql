SELECT * FROM store1 WITH PREFERENCE SUMMARY.Estimate.Count(itemno) * (SELECT COUNT(*) FROM store2)
