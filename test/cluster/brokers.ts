/** The broker of a cluster, or three of them, and the disk that its store is on where tests may fill that. */
import { SmallDisk, startTestBroker, startTestCluster, type TestBroker, type TestCluster } from '@penstock/testkit';

export interface ClusterBrokers {
  /** Of all, comma-separated. */
  readonly url: string;
  readonly servers: readonly TestBroker[];
  /** Where there are three. */
  readonly peers: TestCluster | undefined;
  /** Where there is one, and its disk is small. */
  readonly disk: SmallDisk | undefined;
  /** Everything that was begun is over: each one runs, hears the others and has room. */
  heal(): Promise<void>;
  stop(): Promise<void>;
}

/** The streams reserve what they may take; it costs nothing before it is used. */
const STORE_BYTES_MAX = 16 * 1024 ** 3;
/** Room for what a load of minutes writes. */
const DISK_BYTES = 768 * 1024 ** 2;

export async function startBrokers(count: 1 | 3, isDiskSmall: boolean): Promise<ClusterBrokers> {
  if (count === 3) {
    const peers = await startTestCluster({ storeBytesMax: STORE_BYTES_MAX });
    return {
      url: peers.url,
      servers: peers.brokers,
      peers,
      disk: undefined,
      async heal() {
        for (const broker of peers.brokers) {
          broker.resume();
          peers.rejoin(broker);
          if (broker.pid === -1) await broker.restart();
        }
      },
      stop: () => peers.stop(),
    };
  }
  const disk = isDiskSmall ? new SmallDisk(DISK_BYTES) : undefined;
  const broker = await startTestBroker({
    storeBytesMax: STORE_BYTES_MAX,
    ...(disk === undefined ? {} : { storeDir: `${disk.folder}/store` }),
  });
  return {
    url: broker.url,
    servers: [broker],
    peers: undefined,
    disk,
    async heal() {
      disk?.empty();
      broker.resume();
      if (broker.pid === -1) await broker.restart();
    },
    async stop() {
      await broker.stop();
      disk?.remove();
    },
  };
}
