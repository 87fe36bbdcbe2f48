/** Whether the process in this container lives: `/health` of a service's internal port, else of the server's own. Exit code 0 or 1. */
const ports = [
  process.env.SERVICE_INTERNAL_LISTEN ?? '127.0.0.1:9090',
  process.env.SERVICE_LISTEN ?? '127.0.0.1:8080',
].map((listen) => listen.slice(listen.lastIndexOf(':') + 1));

const answers = await Promise.allSettled(
  ports.map((port) => fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(3_000) })),
);
process.exitCode = answers.some(({ value }) => value?.ok === true) ? 0 : 1;
