/** The application: sign-in, navigation, and three screens. */
import { type FormEvent, StrictMode, useState, useSyncExternalStore } from 'react'
import { createRoot } from 'react-dom/client'
import { Board } from './board.tsx'
import { Overview } from './overview.tsx'
import { Projects } from './projects.tsx'
import { SessionProvider, storedToken, storeToken } from './session.tsx'

function subscribeToHash(onChange: () => void): () => void {
  window.addEventListener('hashchange', onChange)
  return () => window.removeEventListener('hashchange', onChange)
}

function Screen() {
  const hash = useSyncExternalStore(subscribeToHash, () => window.location.hash)
  const [, screen, id] = hash.split('/')
  if (screen === 'overview') return <Overview />
  return screen === 'projects' && id !== undefined ? <Board project={Number(id)} /> : <Projects />
}

function SignIn({ onToken }: { onToken: (token: string) => void }) {
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    onToken(String(new FormData(event.currentTarget).get('token')).trim())
  }
  return (
    <form onSubmit={submit}>
      <label>
        Token <input name="token" type="password" autoComplete="off" />
      </label>
      <button type="submit">Sign in</button>
    </form>
  )
}

function App() {
  const [token, setToken] = useState(storedToken)
  function enter(next: string) {
    storeToken(next)
    setToken(next)
  }
  if (token === null) return <SignIn onToken={enter} />
  return (
    <SessionProvider token={token}>
      <nav>
        <a href="#/projects">Projects</a>
        <a href="#/overview">Overview</a>
      </nav>
      <Screen />
    </SessionProvider>
  )
}

const root = document.getElementById('root')
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
}
