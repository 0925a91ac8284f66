//! Camera data of photographs.

use engine::Object;
use images::CameraInfo;

use super::Variants;
use super::render_pool::RenderCost;
use crate::limits::IMAGE_HEAD_BYTES;

impl Variants {
    /// Returns the camera data of an image; `None` for other files, and for images without any near their start.
    pub async fn camera(&self, image: &Object) -> Option<CameraInfo> {
        if !image.content_type().starts_with("image/") {
            return None;
        }
        let (store, image) = (self.0.store.clone(), image.clone());
        let bytes = image.bytes().min(IMAGE_HEAD_BYTES);
        // On the render pool, which survives a panic of a parser.
        let read = self.0.render_pool.run(RenderCost { ms: 1, bytes }, move || {
            let body = store.body(&image)?;
            Ok::<_, engine::Error>(images::read_camera(&body.read(0..bytes)?))
        });
        read.await.ok()?.ok().flatten()
    }
}
