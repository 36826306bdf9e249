/** A request as texts for other programs. The token is a variable in all of them. */
export interface SnippetRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  /** JSON; null without a body. */
  readonly body: string | null
}

export interface Snippet {
  readonly name: string
  readonly text: string
}

export function snippetsOf(request: SnippetRequest): readonly Snippet[] {
  return [
    { name: 'HTTP', text: http(request) },
    { name: 'curl', text: curl(request) },
    { name: 'TypeScript', text: typescript(request) },
  ]
}

function http({ url, method, body }: SnippetRequest): string {
  const { host, pathname, search } = new URL(url)
  const head = `${method} ${pathname}${search} HTTP/1.1\nHost: ${host}\nAuthorization: Bearer …`
  return body === null ? head : `${head}\nContent-Type: application/json\n\n${body}`
}

function curl({ url, body }: SnippetRequest): string {
  const lines = [`curl ${quoted(url)}`, '-H "Authorization: Bearer $TOKEN"']
  if (body !== null) lines.push("-H 'Content-Type: application/json'", `-d ${quoted(body)}`)
  return lines.join(' \\\n  ')
}

/** Quotes a text for a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function typescript({ url, method, body }: SnippetRequest): string {
  const headers = ["Authorization: 'Bearer ' + token"]
  if (body !== null) headers.push("'Content-Type': 'application/json'")
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    `headers: { ${headers.join(', ')} }`,
    ...(body === null ? [] : [`body: ${JSON.stringify(body)}`]),
  ]
  return [
    `const response = await fetch(${JSON.stringify(url)}, {`,
    ...options.map(option => `  ${option},`),
    '})',
    'if (!response.ok) throw new Error(await response.text())',
    'const { data } = await response.json()',
  ].join('\n')
}
