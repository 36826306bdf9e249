/** The frame of the application: the signed-in caller, links to the screens, and the current screen. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError, type Session } from './api.ts'
import { Explain } from './explain/explain.tsx'
import { Explore } from './explore/explore.tsx'
import { Live } from './live/live.tsx'
import { completeSignIn, readArrival } from './oidc.ts'
import { forgetAdmin } from './operator/admin.tsx'
import { Checks } from './operator/checks.tsx'
import { Operations } from './operator/operations.tsx'
import { Webhooks } from './operator/webhooks.tsx'
import { Problem } from './problem.tsx'
import { forgetQueries } from './query/history.ts'
import { Query } from './query/query.tsx'
import { OPERATOR_SCREENS, parseRoute, printRoute, type Route, SCREENS, type Screen } from './route.ts'
import { readSchema, type Schema } from './schema.ts'
import { claimsOf, keepPending, keepToken, keptPending, keptToken } from './session.ts'
import { SignIn } from './sign-in.tsx'
import { TEXTS } from './texts.ts'
import { useRequest } from './use-request.ts'

export function App() {
  const [session, setSession] = useState<Session | null>(initialSession)
  const [refusal, setRefusal] = useState<unknown>(null)
  const [arrival, setArrival] = useState(takeArrival)
  const route = useRoute()
  const signIn = (next: Session): void => {
    keepToken(next.token)
    keepPending(null)
    forgetQueries()
    setRefusal(null)
    setSession(next)
  }
  const signOut = (reason: unknown): void => {
    keepToken(null)
    forgetQueries()
    forgetAdmin()
    setRefusal(reason)
    setSession(null)
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: a code is valid only once.
  useEffect(() => {
    if (arrival === null) return
    const pending = keptPending()
    keepPending(null)
    completeSignIn(arrival, pending).then(
      token => {
        setArrival(null)
        signIn({ token })
        location.replace(pending?.screen || '#')
      },
      (error: unknown) => {
        setArrival(null)
        signOut(error)
      },
    )
  }, [])
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: its target is in this page, and the address names the screen */}
      <a class="skip" href="#content" onClick={focusContent}>
        {TEXTS.skip}
      </a>
      <header class="bar">
        <h1>{TEXTS.title}</h1>
        <nav aria-label={TEXTS.screens} class="screens">
          {SCREENS.map(screen => (
            <a key={screen} href={printRoute(screen)} aria-current={screenOf(route) === screen ? 'page' : undefined}>
              {TEXTS.screen[screen]}
            </a>
          ))}
        </nav>
        <nav aria-label={TEXTS.home} class="elsewhere">
          <a href="./">{TEXTS.home}</a>
          <a href="docs">{TEXTS.reference}</a>
        </nav>
        <Caller session={session} signOut={() => signOut(null)} />
      </header>
      <main id="content" tabIndex={-1}>
        {OPERATOR_SCREENS.includes(route.screen) ? (
          <OperatorScreen screen={route.screen} />
        ) : arrival !== null ? (
          <p role="status">{TEXTS.provider.finishing}</p>
        ) : session === null ? (
          <SignIn refusal={refusal} signIn={signIn} />
        ) : (
          // The key discards every state of the previous caller.
          <SignedIn key={session.token} session={session} route={route} signOut={signOut} />
        )}
      </main>
    </>
  )
}

function OperatorScreen({ screen }: { readonly screen: Screen }) {
  if (screen === 'checks') return <Checks key="checks" />
  return screen === 'webhooks' ? <Webhooks key="webhooks" /> : <Operations key="operations" />
}

interface SignedInProps {
  readonly session: Session
  readonly route: Route
  readonly signOut: (reason: unknown) => void
}

function SignedIn({ session, route, signOut }: SignedInProps) {
  const [schema, again] = useRequest<Schema>(() => readSchema(session), '')
  useEffect(() => {
    if (schema.kind === 'failed' && schema.error instanceof ApiError && schema.error.status === 401)
      signOut(schema.error)
  }, [schema, signOut])
  if (schema.kind === 'loading') return <p role="status">{TEXTS.loading}</p>
  if (schema.kind === 'failed') return <Problem error={schema.error} again={again} />
  if (route.screen === 'query') {
    const text = route.query.get('query')
    return <Query key={text} session={session} schema={schema.value} initial={text} />
  }
  if (route.screen === 'explain') {
    const request = route.query.get('request')
    return <Explain key={request} session={session} initial={request} />
  }
  if (route.screen === 'live') return <Live session={session} schema={schema.value} initial={route.subject} />
  return <Explore session={session} schema={schema.value} route={route} />
}

function Caller({ session, signOut }: { readonly session: Session | null; readonly signOut: () => void }) {
  if (session === null) return <p class="caller">{TEXTS.notSignedIn}</p>
  const claims = (session.token === null ? null : claimsOf(session.token)) ?? []
  return (
    <div class="caller">
      {claims.length === 0 ? (
        <p>{session.token === null ? TEXTS.noToken : TEXTS.caller(null)}</p>
      ) : (
        // The ids of a caller are too long for a header.
        <details>
          <summary>{TEXTS.caller(nameOf(new Map(claims)))}</summary>
          <dl>
            {claims.map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
      <button type="button" onClick={signOut}>
        {TEXTS.signOut}
      </button>
    </div>
  )
}

/** The screen among the links of the header. */
function screenOf({ screen }: Route): Screen {
  return screen === 'graph' ? 'explore' : screen
}

/** The shortest claim that names the caller; null if the token has none. */
function nameOf(claims: ReadonlyMap<string, string>): string | null {
  return claims.get('role') ?? claims.get('sub') ?? claims.get('user_id') ?? null
}

function initialSession(): Session | null {
  const token = keptToken()
  return token === null ? null : { token }
}

/** Takes the code of the provider out of the address, so that it is in no bookmark and no link. */
function takeArrival(): URLSearchParams | null {
  const arrival = readArrival(location.search)
  if (arrival !== null) history.replaceState(null, '', location.pathname + location.hash)
  return arrival
}

/** The address; changes with the links and the buttons of the browser. */
function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash))
  useEffect(() => {
    const follow = (): void => setRoute(parseRoute(location.hash))
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  useEffect(() => {
    document.title = [route.subject, TEXTS.screen[route.screen], TEXTS.title].filter(part => part !== null).join(' – ')
  }, [route])
  return route
}

/** The target of the link is not a route. */
function focusContent(event: Event): void {
  event.preventDefault()
  document.getElementById('content')?.focus()
}
