/** The way to an engine: its socket, and podman's process that serves it. */
import { dockerDialect, podmanDialect } from './dialects.ts';
import { EngineClient } from './engine-client.ts';
import { Engine } from './engine.ts';
import type { FoundEngine } from './find-engine.ts';
import { Images } from './images.ts';
import { PodmanService } from './podman-service.ts';

export interface Connection {
  readonly engine: Engine;
  readonly images: Images;
  readonly isOver: boolean;
  close(): Promise<void>;
}

/** `socketPath`: for podman's process, where nobody else can enter. Rejects with EngineFailed. */
export async function openConnection(found: FoundEngine, socketPath: string): Promise<Connection> {
  if (found.kind === 'docker') {
    const engine = new Engine(new EngineClient(found.socketPath), dockerDialect);
    return { engine, images: new Images(engine), isOver: false, close: () => Promise.resolve(engine.close()) };
  }
  const service = new PodmanService(found.command, socketPath);
  await service.ready;
  const engine = new Engine(new EngineClient(socketPath), podmanDialect);
  return {
    engine,
    images: new Images(engine),
    get isOver() {
      return service.isOver;
    },
    close: () => {
      engine.close();
      return service.close();
    },
  };
}
