SELECT * FROM store1 a LEFT JOIN store2 b ON a.itemno = b.itemno WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno), SUMMARY.Estimate.Count(b.itemno)
