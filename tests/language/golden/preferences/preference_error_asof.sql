SELECT * FROM store1 a ASOF JOIN store2 b ON a.itemno = b.itemno AND a.timestamp >= b.timestamp WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno), SUMMARY.Estimate.Count(b.itemno)
