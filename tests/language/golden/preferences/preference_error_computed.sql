SELECT * FROM (SELECT itemno * 2 AS item FROM store1) s WITH PREFERENCE SUMMARY.Estimate.Count(item)
