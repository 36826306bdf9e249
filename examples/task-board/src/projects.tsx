/** All projects, with TanStack Query. Every change of the table makes the query read again. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useEffect } from 'react'
import { Failure } from './failure.tsx'
import { useSession } from './session.tsx'

const KEY = ['projects']

interface Project {
  readonly id: number | null
  readonly name: string
}

export function Projects() {
  const { client } = useSession()
  const queries = useQueryClient()
  const projects = useQuery<readonly Project[]>({
    queryKey: KEY,
    queryFn: ({ signal }) => client.from('projects').select('id', 'name').orderBy('name').limit(100).rows({ signal }),
  })
  useEffect(() => {
    const again = () => void queries.invalidateQueries({ queryKey: KEY })
    return client.from('projects').subscribe({ onChange: again, onResync: again })
  }, [client, queries])

  const create = useMutation({
    mutationFn: (name: string) => client.from('projects').insert({ name }),
    // Shown at once, and removed again if the gateway refuses it.
    onMutate: async name => {
      await queries.cancelQueries({ queryKey: KEY })
      const before = queries.getQueryData<readonly Project[]>(KEY) ?? []
      queries.setQueryData<readonly Project[]>(KEY, [...before, { id: null, name }])
      return before
    },
    onError: (_, __, before) => queries.setQueryData(KEY, before),
    onSettled: () => queries.invalidateQueries({ queryKey: KEY }),
  })

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    create.mutate(String(new FormData(form).get('name')))
    form.reset()
  }

  return (
    <main>
      <h1>Projects</h1>
      <Failure error={projects.error ?? create.error} />
      <ul>
        {projects.data?.map(({ id, name }) => (
          <li key={id ?? 'new'} className={id === null ? 'pending' : ''}>
            {id === null ? <span>{name}</span> : <a href={`#/projects/${id}`}>{name}</a>}
          </li>
        ))}
      </ul>
      <form onSubmit={submit}>
        <input name="name" aria-label="Name" placeholder="New project" />
        <button type="submit">Create</button>
      </form>
    </main>
  )
}
