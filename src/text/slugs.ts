/** The anchors of the headings of a page, as GitHub makes them. */

/** Creates a function that returns the anchor of each heading of one page. A repeated title gets a number. */
export function createSlugs(): (title: string) => string {
  const seen = new Map<string, number>()
  return title => {
    const slug = slugOf(title)
    const times = seen.get(slug) ?? 0
    seen.set(slug, times + 1)
    return times === 0 ? slug : `${slug}-${times}`
  }
}

function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .replaceAll(' ', '-')
}
