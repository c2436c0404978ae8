SELECT * FROM store1 WITH PREFERENCE SUMMARY.Estimate.Count(itemno) WITH (max_fn = 0.1)
