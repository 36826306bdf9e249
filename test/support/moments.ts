/** Waiting for something to be so, by being asked again whenever it may have become so. */
export interface Moments {
  /** Resolves once it is so. */
  when(isSo: () => boolean): Promise<void>
  /** Something has changed. */
  look(): void
}

export function createMoments(): Moments {
  const looks = new Set<() => void>()
  return {
    when: isSo =>
      new Promise(resolve => {
        const look = (): void => {
          if (!isSo()) return
          looks.delete(look)
          resolve()
        }
        looks.add(look)
        look()
      }),
    look() {
      for (const look of looks) look()
    },
  }
}
