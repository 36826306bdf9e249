/**
 * The editor of a query. It is in a shadow root, where its style sheets are objects: in the page itself they
 * would be inline styles, which the content security policy forbids.
 */
import { autocompletion, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language'
import { linter, lintKeymap } from '@codemirror/lint'
import { EditorState, Prec } from '@codemirror/state'
import { EditorView, keymap } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'
import { QuerySyntaxError } from '../../../src/language/index.ts'
import type { Schema } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { suggest } from './completion.ts'
import { QUERY_TOKENS } from './highlight.ts'
import { syntaxErrorOf } from './statement.ts'

interface EditorProps {
  readonly text: string
  readonly schema: Schema
  readonly change: (text: string) => void
  readonly run: () => void
}

export function Editor({ text, schema, change, run }: EditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  // The editor is created once, and calls the functions of the last rendering.
  const current = useRef({ change, run })
  current.current = { change, run }
  // biome-ignore lint/correctness/useExhaustiveDependencies: the next effect applies another text.
  useEffect(() => {
    const element = host.current
    if (element === null) return
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' })
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({ doc: text, extensions: extensionsOf(schema, current) }),
    })
    view.current = editor
    return () => editor.destroy()
  }, [schema])
  useEffect(() => {
    const state = view.current?.state
    if (state === undefined || state.doc.toString() === text) return
    view.current?.dispatch({ changes: { from: 0, to: state.doc.length, insert: text } })
  }, [text])
  return <div ref={host} class="editor" />
}

function extensionsOf(schema: Schema, last: { readonly current: Pick<EditorProps, 'change' | 'run'> }) {
  const submit = (): boolean => {
    last.current.run()
    return true
  }
  return [
    Prec.highest(keymap.of([{ key: 'Mod-Enter', run: submit }])),
    history(),
    // The Tab key moves the focus out of the editor, so it can be used with the keyboard alone.
    keymap.of([...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
    StreamLanguage.define(QUERY_TOKENS),
    syntaxHighlighting(COLORS),
    autocompletion({
      icons: false,
      override: [
        ({ state, pos, explicit }) => {
          const { from, options } = suggest(state.doc.toString(), pos, schema)
          if (from === pos && !explicit) return null
          return {
            from,
            options: options.map(({ label, kind, detail, text }) => ({ label, detail, type: kind, apply: text })),
          }
        },
      ],
    }),
    linter(({ state }) => problemsOf(state.doc.toString()), { delay: 300 }),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ 'aria-label': TEXTS.query.editor, spellcheck: 'false' }),
    EditorView.updateListener.of(update => {
      if (update.docChanged) last.current.change(update.state.doc.toString())
    }),
    LOOK,
  ]
}

function problemsOf(text: string) {
  const error = text.trim() === '' ? null : syntaxErrorOf(text)
  if (error === null) return []
  const from = Math.min(error instanceof QuerySyntaxError ? error.offset : (error.span?.start ?? 0), text.length)
  const to = Math.max(from, Math.min(error.span?.end ?? from, text.length))
  const message = error instanceof QuerySyntaxError ? error.problem : error.message
  return [{ from, to, severity: 'error' as const, message }]
}

const COLORS = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--accent)', fontWeight: '600' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: [tags.number, tags.atom], color: 'var(--bad)' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
])

const LOOK = EditorView.theme({
  '&': { backgroundColor: 'var(--surface)', color: 'var(--text)', fontSize: '15px' },
  '&.cm-focused': { outline: '3px solid var(--accent)', outlineOffset: '2px' },
  '.cm-scroller': { fontFamily: 'ui-monospace, monospace', minHeight: '8em', maxHeight: '50vh' },
  '.cm-content': { caretColor: 'var(--text)', padding: '8px' },
  '.cm-tooltip': { backgroundColor: 'var(--surface)', border: '1px solid var(--field)', color: 'var(--text)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--accent-text)' },
  '.cm-completionDetail': { color: 'inherit' },
})
