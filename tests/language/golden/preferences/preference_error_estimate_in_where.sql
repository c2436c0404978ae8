SELECT * FROM store1 WHERE SUMMARY.Estimate.Count(itemno) > 5
