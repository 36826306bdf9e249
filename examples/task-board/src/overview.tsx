/** The newest open tasks of all projects, with the hooks of the gateway: a live read with related rows. */
import { useLive } from 'svc-gateway/react'
import { Failure } from './failure.tsx'
import { useSession } from './session.tsx'

export function Overview() {
  const { client } = useSession()
  const { rows, error } = useLive(
    client
      .from('tasks')
      .select('id', 'title')
      .where({ done: false })
      .expand('projects', project => project.select('name'))
      .orderBy('-created_at')
      .limit(10),
  )
  return (
    <main>
      <h1>Overview</h1>
      <Failure error={error} />
      <ul>
        {rows?.map(({ id, title, projects: project }) => (
          <li key={id}>
            <span>{title}</span>
            <span>{project?.name}</span>
          </li>
        ))}
      </ul>
    </main>
  )
}
