SELECT * FROM store1 WITH (weight = 2) WITH PREFERENCE SUMMARY.Estimate.Count(itemno) WITH (weight = 3)
