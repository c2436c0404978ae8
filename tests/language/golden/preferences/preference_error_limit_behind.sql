SELECT * FROM store1 WITH PREFERENCE desc SUMMARY.Estimate.Count(itemno) LIMIT 3
