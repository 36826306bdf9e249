/** Text in a colour or in bold, where the output shows it. */
import { styleText } from 'node:util'

/** A colour, a weight, or several of them. */
export type Style = Parameters<typeof styleText>[0]

export function styled(style: Style, text: string, { hasColors }: { readonly hasColors: boolean }): string {
  // Newer versions of Node would otherwise inspect standard output again.
  return hasColors ? styleText(style, text, { validateStream: false }) : text
}
