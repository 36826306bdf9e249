/** The tokens of the query language, as far as an editor colors them. */
import type { StreamParser } from '@codemirror/language'
import { extendHash, findWord } from '../../../src/language/syntax/vocabulary.ts'

function isKeyword(word: string): boolean {
  let hash = 0
  for (let at = 0; at < word.length; at++) hash = extendHash(hash, word.charCodeAt(at))
  return findWord(word, 0, word.length, hash) !== null
}

/** The state is true if a block comment is open at the beginning of a line. */
export const QUERY_TOKENS: StreamParser<{ inComment: boolean }> = {
  startState: () => ({ inComment: false }),
  copyState: state => ({ ...state }),
  token(stream, state) {
    if (state.inComment || stream.match('/*')) {
      state.inComment = !stream.match(/^.*?\*\//)
      if (state.inComment) stream.skipToEnd()
      return 'comment'
    }
    if (stream.match(/^--.*/)) return 'comment'
    if (stream.match(/^'(?:[^']|'')*'?/)) return 'string'
    if (stream.match(/^`(?:[^`]|``)*`?/)) return 'variableName'
    if (stream.match(/^[:$][\p{L}\p{N}_]+/u)) return 'atom'
    if (stream.match(/^\d+(?:\.\d+)?[a-z]*/)) return 'number'
    const word = stream.match(/^[\p{L}_][\p{L}\p{N}_]*/u)
    if (Array.isArray(word)) return isKeyword(word[0]) ? 'keyword' : 'variableName'
    stream.next()
    return 'operator'
  },
}
