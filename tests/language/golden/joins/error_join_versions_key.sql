SELECT fare FROM flights fl JOIN fares fa ON fa.fare = fl.delay
