// Writes a snapshot with Kafka's own RecordsSnapshotWriter, at a clock that stands still.
// Arguments: directory, end offset, epoch, kraft.version, largest batch, time. Each line of the
// input is one append: values in base64, apart by commas.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.Writable;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.serialization.RecordSerde;
import org.apache.kafka.snapshot.FileRawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;

public class SnapshotBytes {
    static final class Plain implements RecordSerde<byte[]> {
        public int recordSize(byte[] data, ObjectSerializationCache cache) {
            return data.length;
        }

        public void write(byte[] data, ObjectSerializationCache cache, Writable out) {
            out.writeByteArray(data);
        }

        public byte[] read(Readable input, int size) {
            return input.readArray(size);
        }
    }

    public static void main(String[] args) throws Exception {
        long now = Long.parseLong(args[5]);
        Time clock = (Time) Proxy.newProxyInstance(
            Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> method.getReturnType() == long.class ? now : null);
        OffsetAndEpoch id = new OffsetAndEpoch(Long.parseLong(args[1]), Integer.parseInt(args[2]));
        RecordsSnapshotWriter<byte[]> writer = new RecordsSnapshotWriter.Builder()
            .setRawSnapshotWriter(FileRawSnapshotWriter.create(Path.of(args[0]), id))
            .setKraftVersion(KRaftVersion.fromFeatureLevel(Short.parseShort(args[3])))
            .setMaxBatchSizeBytes(Integer.parseInt(args[4]))
            .setLastContainedLogTimestamp(now)
            .setTime(clock)
            .build(new Plain());
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            List<byte[]> values = new ArrayList<>();
            for (String each : line.split(",", -1)) {
                values.add(Base64.getDecoder().decode(each));
            }
            writer.append(values);
        }
        writer.freeze();
        writer.close();
    }
}
