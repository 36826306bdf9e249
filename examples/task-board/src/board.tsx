/** The tasks of a project, with TanStack DB: every change is shown at once, and received from others. */
import { eq, useLiveQuery } from '@tanstack/react-db'
import { type FormEvent, useState } from 'react'
import { Failure } from './failure.tsx'
import { useSession } from './session.tsx'
import type { Task } from './tasks.ts'

export function Board({ project }: { project: number }) {
  const { tasks } = useSession()
  const [error, setError] = useState<unknown>(null)
  const { data, isLoading } = useLiveQuery(
    query =>
      query
        .from({ task: tasks })
        .where(({ task }) => eq(task.project_id, project))
        .orderBy(({ task }) => task.created_at),
    [tasks, project],
  )

  /** If the write fails, the collection takes it back. */
  function attempt(change: { readonly isPersisted: { readonly promise: Promise<unknown> } }) {
    setError(null)
    change.isPersisted.promise.catch(setError)
  }

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    const title = String(new FormData(form).get('title'))
    const created_at = new Date().toISOString()
    attempt(tasks.insert({ id: crypto.randomUUID(), project_id: project, title, done: false, created_at }))
    form.reset()
  }

  return (
    <main>
      <h1>Board</h1>
      <Failure error={error} />
      {isLoading ? <p>Loading …</p> : null}
      <ul>
        {data.map((task: Task) => (
          <li key={task.id} data-id={task.id}>
            <label className={task.done ? 'done' : ''}>
              <input
                type="checkbox"
                checked={task.done}
                onChange={() =>
                  attempt(
                    tasks.update(task.id, draft => {
                      draft.done = !task.done
                    }),
                  )
                }
              />
              {task.title}
            </label>
            <button type="button" onClick={() => attempt(tasks.delete(task.id))}>
              Delete
            </button>
          </li>
        ))}
      </ul>
      <form onSubmit={submit}>
        <input name="title" aria-label="Title" placeholder="New task" />
        <button type="submit">Add</button>
      </form>
    </main>
  )
}
