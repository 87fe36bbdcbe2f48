/** A run from a text: an editor with what the server says of the file as one types, its inputs, and the start. */
import { signal, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { ask } from '../api/graphql.ts';
import { problemFrom, type Problem } from '../api/http.ts';
import type { Operations } from '../api/operations.ts';
import { Name } from '../parts/name.tsx';
import { attemptSignedIn } from '../parts/notices.tsx';
import { Loading, ProblemNote } from '../parts/states.tsx';
import { useAlone } from '../parts/use-alone.ts';
import { go } from '../router.ts';
import { session } from '../session/session.ts';
import type { Editor } from './editor.ts';
import { PlanPreview } from './plan-preview.tsx';
import { setTitle } from '../parts/title.ts';

type Validation = Operations['Validate']['data']['validatePipeline'];

const FIRST = `pipeline:
  name: hello
stages:
  build:
    run: echo building
  test:
    after: build
    run: echo testing
`;
const TYPING_MS = 400;

/** What was typed stays while one looks at another page. */
const draft = signal(FIRST);

export function TriggerPage(): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const isOpen = useSignal(false);
  const inputs = useSignal<readonly string[]>([]);
  const values = useSignal<Readonly<Record<string, string>>>({});
  const validation = useSignal<Validation | null>(null);
  const problem = useSignal<Problem | null>(null);
  const alone = useAlone();
  setTitle('Trigger');

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let asking = new AbortController();
    let isGone = false;
    const check = async (): Promise<void> => {
      asking.abort();
      asking = new AbortController();
      const { signal: stop } = asking;
      try {
        const { validatePipeline } = await ask('Validate', { yaml: draft.peek() }, stop);
        if (stop.aborted) return;
        validation.value = validatePipeline;
        problem.value = null;
        editor.current?.show(
          validatePipeline.diagnostics.map((each) => ({ ...each, isWarning: validatePipeline.valid })),
        );
      } catch (error) {
        if (!stop.aborted) problem.value = problemFrom(error);
      }
    };
    void import('./editor.ts').then(({ openEditor }) => {
      if (isGone || host.current === null) return;
      isOpen.value = true;
      editor.current = openEditor({
        host: host.current,
        text: draft.peek(),
        onChange: (text, names) => {
          draft.value = text;
          inputs.value = names;
          clearTimeout(timer);
          timer = setTimeout(() => void check(), TYPING_MS);
        },
      });
    });
    return () => {
      isGone = true;
      clearTimeout(timer);
      asking.abort();
      editor.current?.close();
      editor.current = null;
    };
  }, []);

  const start = (): void => {
    const given = inputs.value.flatMap((key) => {
      const value = values.value[key];
      return value === undefined || value === '' ? [] : [{ key, value }];
    });
    alone(() =>
      attemptSignedIn('Begun.', async () => {
        const { triggerPipeline } = await ask('Trigger', { yaml: draft.peek(), inputs: given });
        go(`/runs/${triggerPipeline.run.id}`);
      }),
    );
  };
  return (
    <>
      <h1>Trigger</h1>
      <div class="trigger">
        <div>
          {isOpen.value ? null : <Loading what="the editor" />}
          <div ref={host} class="editor" />
        </div>
        <div>
          <p class="row">
            <button type="button" disabled={validation.value?.valid === false} onClick={start}>
              {session.value === null ? 'Sign in to start it' : 'Start it'}
            </button>
            <span class="faint" role="status">
              {validation.value === null
                ? ''
                : validation.value.valid
                  ? 'The file is in order.'
                  : 'The file has mistakes.'}
            </span>
          </p>
          {problem.value === null ? null : <ProblemNote problem={problem.value} />}
          <ul class="diagnostics" aria-label="What the server says of the file">
            {(validation.value?.diagnostics ?? []).map(({ line, column, message, suggestion }) => (
              <li key={`${line} ${column} ${message}`} class={validation.value?.valid === true ? 'warning' : ''}>
                <button type="button" class="link" onClick={() => editor.current?.goTo(line, column)}>
                  line {line}
                </button>{' '}
                <Name text={message} />
                {suggestion === null ? null : (
                  <span class="faint">
                    {' '}
                    (<Name text={suggestion} />)
                  </span>
                )}
              </li>
            ))}
          </ul>
          {inputs.value.length === 0 ? null : (
            <section aria-label="Inputs">
              <h2>Inputs</h2>
              {inputs.value.map((name) => (
                <p key={name}>
                  <label>
                    <Name text={name} />{' '}
                    <input
                      value={values.value[name] ?? ''}
                      placeholder="as the file says"
                      onInput={(event) => (values.value = { ...values.value, [name]: event.currentTarget.value })}
                    />
                  </label>
                </p>
              ))}
            </section>
          )}
          <p class="faint">
            The run begins in an empty folder: a stage that needs a repository clones it. <code>penstock run</code>{' '}
            works on the files of a folder.
          </p>
        </div>
      </div>
      <PlanPreview
        stages={validation.value?.valid === true ? validation.value.stages : null}
        onChoose={(name) => editor.current?.goToStage(name)}
      />
    </>
  );
}
