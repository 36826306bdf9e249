/** A queue whose both ends are cheap: an array would copy itself on every `shift`. */

/** Below this the empty front is not worth closing up. */
const COMPACT_FROM = 64

export class Fifo<T> {
  #items: T[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  /** Back to the front: for what had its turn and did not get to use it. */
  unshift(item: T): void {
    if (this.#head > 0) this.#items[--this.#head] = item
    else this.#items.unshift(item)
  }

  peek(): T | undefined {
    return this.#items[this.#head]
  }

  shift(): T | undefined {
    const item = this.#items[this.#head]
    if (this.#head === this.#items.length) return undefined
    // The slot must not keep alive what has left.
    this.#items[this.#head++] = undefined as T
    if (this.#head === this.#items.length) {
      this.#items.length = 0
      this.#head = 0
    } else if (this.#head >= COMPACT_FROM && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Removes one item wherever it stands; false if it is not there. */
  remove(item: T): boolean {
    const index = this.#items.indexOf(item, this.#head)
    if (index === -1) return false
    if (index === this.#head) this.shift()
    else this.#items.splice(index, 1)
    return true
  }

  *[Symbol.iterator](): Generator<T> {
    for (let index = this.#head; index < this.#items.length; index++) yield this.#items[index] as T
  }

  /** Empties the queue. */
  drain(): T[] {
    const items = this.#items.slice(this.#head)
    this.#items = []
    this.#head = 0
    return items
  }
}
