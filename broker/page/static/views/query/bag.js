// The rows of an answer as a bag: equal rows may be there several times, and each is told apart on the screen.

/**
 * @typedef {{serial: number, values: any[], came: number, went: number, was?: any[]}} Row
 * came, went: when it came or went while somebody looked, in ms of `performance.now()`; 0: it did not. was: the values of the row in whose
 * place it came.
 */

/** An answer that changes row by row. Adding and removing are O(1). */
export class Bag {
  /** @type {Map<number, Row>} in the order in which they came */
  rows = new Map();
  /** @type {Row[]} those that went, until they are forgotten */
  leaving = [];
  /** @type {Map<string, Row[]>} */
  #alike = new Map();
  #serial = 0;

  /** @param {any[]} values @param {number} [now] when it came; 0: it was there already */
  add(values, now = 0) {
    this.#hold(JSON.stringify(values), { serial: ++this.#serial, values, came: now, went: 0 });
  }

  /**
   * Take in changes, `[weight, instant, values]` each. A row that comes as one of its place goes, such as the new count of a group, stands
   * where the old one stood.
   * @param {[number, number, any[]][]} changes @param {((values: any[]) => string)|null} placeOf null: rows have no place
   * @param {number} now
   */
  change(changes, placeOf, now) {
    const left = new Map();
    for (const [weight, , values] of changes) {
      const place = placeOf ? placeOf(values) : null;
      if (weight < 0) {
        const row = this.#take(values);
        const gone = left.get(place);
        if (row && gone) gone.push(row);
        else if (row) left.set(place, [row]);
        continue;
      }
      const old = place === null ? undefined : left.get(place)?.shift();
      if (old) this.#hold(JSON.stringify(values), { serial: old.serial, values, came: now, went: 0, was: old.values });
      else this.add(values, now);
    }
    for (const rows of left.values())
      for (const row of rows) {
        this.rows.delete(row.serial);
        this.leaving.push({ ...row, went: now });
      }
  }

  /** One row of these values, which is held no more but still in its place. @param {any[]} values */
  #take(values) {
    const key = JSON.stringify(values);
    const alike = this.#alike.get(key);
    if (!alike) return null;
    const row = alike.shift();
    if (!alike.length) this.#alike.delete(key);
    return row;
  }

  /** Become these rows, in this order. @param {any[][]} all @param {number} now when those that are new came; 0: they were there */
  become(all, now) {
    const before = this.#alike;
    this.#alike = new Map();
    this.rows = new Map();
    for (const values of all) {
      const key = JSON.stringify(values);
      const known = before.get(key)?.shift();
      if (known) this.#hold(key, known);
      else this.add(values, now);
    }
    if (now) for (const alike of before.values()) for (const row of alike) this.leaving.push({ ...row, went: now });
  }

  /** @param {string} key @param {Row} row */
  #hold(key, row) {
    const alike = this.#alike.get(key);
    if (alike) alike.push(row);
    else this.#alike.set(key, [row]);
    this.rows.set(row.serial, row);
  }

  /** Forget rows that went before an instant. @param {number} before */
  forget(before) {
    if (this.leaving.length) this.leaving = this.leaving.filter((row) => row.went > before);
  }
}
