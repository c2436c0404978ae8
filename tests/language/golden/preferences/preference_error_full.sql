SELECT * FROM store1 a FULL JOIN store2 b ON a.itemno = b.itemno WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno), SUMMARY.Estimate.Count(b.itemno)
